"""Telling people: Alertmanager and DingTalk. The ground floor; knows nothing of checkpoints."""
