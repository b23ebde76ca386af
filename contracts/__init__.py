"""The law between a supervisor and a core: clauses, scenarios, hosts to run them on, a judge, and reports."""
