"""Teach, recognise and search over HTTP: `rankshot serve`."""
