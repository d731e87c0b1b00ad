"""Where other libraries insist on their own classes. Each is imported only by its own module here."""
