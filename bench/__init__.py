"""What ./dev bench measures; see run.py."""
