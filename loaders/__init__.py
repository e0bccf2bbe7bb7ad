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

================  ==============================================================
Importing this package imports neither TensorFlow nor OpenCV nor NumPy.
"""

from loaders._registry import Batch, Job, Question, Skip, variant

__all__ = ["Batch", "Job", "Question", "Skip", "variant"]
