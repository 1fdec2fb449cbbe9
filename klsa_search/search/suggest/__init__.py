"""Suggest: what somebody who types may be about to ask for."""
