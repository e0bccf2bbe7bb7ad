"""The suite under airspeed velocity: thin classes over the registry of ``loaders``; no strategy is named here."""
