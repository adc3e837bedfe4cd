"""What is drawn, as text and rows: pure functions over records."""
