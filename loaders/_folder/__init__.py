"""Advice on a person's own folder of images, with a loader that was measured on it.

===============  ==============================================================================
``look``         what is in the folder: how many images, of what size, with which labels
``written``      the loaders that can be handed out, each a file that needs nothing of this package
``question``     in a trial's process: one of these loaders on some of the folder's images
``race``         which trials are run, and until when
``advice``       the trials to an answer: what to use, what it needs, what would change that
``words``        the answer in sentences
``command``      ``python -m loaders advise FOLDER``, from beginning to end
===============  ==============================================================================
"""
