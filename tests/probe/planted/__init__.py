"""Pipelines as users write them, each with a planted truth: what the probe is tested against.

They use public interfaces alone and know nothing of the suite. ``tests.probe.truths`` says what is true.
"""
