"""What the stores in SQL databases share: statements, transactions and migrations.

Nothing here names a driver, and nothing here is imported before a database is opened.
"""
