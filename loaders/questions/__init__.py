"""The questions: one module each. Anyone may add one, or a strategy to one; see ``CONTRIBUTING.md``.

A module's docstring explains its question, ``QUESTION`` declares it, and its functions under ``@variant`` are the
strategies that answer it.
"""
