"""One script per revision; a script that was released is never changed."""
