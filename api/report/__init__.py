"""What a study found, as one HTML file."""
