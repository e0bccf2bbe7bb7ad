"""The questions: one module or package each. Anyone may add one, or a strategy to one; see ``CONTRIBUTING.md``.

A module's docstring explains its question, ``QUESTION`` declares it, and its functions under ``@variant`` are the
strategies that answer it. In a package, ``__init__`` does the first two and holds what the strategies share; every
other module holds strategies of one engine or kind, and is found without being named anywhere.
"""
