"""The same models at finite size: data, exact fits, and many seeds of them."""
