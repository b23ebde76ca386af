"""The commands of `legion-contracts`, a module each, imported when one is called (table in `contracts.cli`)."""
