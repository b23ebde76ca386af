"""What a run left is judged: statements compared with the trace, findings counted clause by clause."""
