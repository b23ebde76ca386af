"""The clauses: what must hold, where it is written, and what proves it."""

from contracts.clauses.catalogue import Clause, ClauseFile, Clauses, load_clauses

__all__ = ["Clause", "ClauseFile", "Clauses", "load_clauses"]
