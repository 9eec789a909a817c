"""Small stand-ins that tests share."""
