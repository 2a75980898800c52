"""A study: a TOML file that says what is identified, from which data, and how."""
