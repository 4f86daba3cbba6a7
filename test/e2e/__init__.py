"""End-to-end cases: kubectl is the client, an observer checks the invariants from outside."""
