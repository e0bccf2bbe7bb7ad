"""Which way of loading data into TensorFlow is fastest, leanest and safe from running out of memory?

The rooms
---------
Every module here with a bare name is one *question*; its docstring explains it and its functions are the
strategies that answer it. Anyone may add one: see ``CONTRIBUTING.md``.

================  =====================================================================
``selection``     drawing samples without replacement from an in-memory array
``resize``        scaling one photograph
``read_order``    walking the records of a sharded data set
``calibration``   what the instruments read where the truth is known
================  =====================================================================

A module with an underscore is machinery:

================  =====================================================================
``_registry``     ``Question``, ``Job`` and ``@variant``: how a strategy is declared
``_contract``     what every strategy must deliver, and the check of it
``_corpus``       the bytes on disk: photographs, records, the user's own folder
``_trial``        one strategy, once, in a fresh process: clocks, memory, the record
``_compare``      rounds of trials in shuffled order, resumable
``_stats``        estimates, ratios and their intervals
``_calibration``  what the instruments are off by, and what they can resolve
``_rows``         trial records to the rows of a comparison
``_words``        figures in words, for the terminal, the page and the README
``_terminal``     progress and tables
``_report``       rows to the page; the asv plugin
``_errors``       what the user can mend, and what a strategy delivered wrongly
``__main__``      ``python -m loaders``
================  =====================================================================

Importing this package imports neither TensorFlow nor OpenCV nor NumPy.
"""

from loaders._registry import Batch, Job, Question, Skip, variant

__all__ = ["Batch", "Job", "Question", "Skip", "variant"]
