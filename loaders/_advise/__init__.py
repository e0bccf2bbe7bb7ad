"""Which strategy a reader should take.

``coverage``    which of the project's machines answers a question
``candidates``  from its records to what can be chosen
``choose``      decides; pure
``beyond``      whether more machines would feed a training step that one cannot
``words``       the decision in words; pure
``command``     ``python -m loaders advise``
``replay``      checks the decisions against a second reading of the same records
"""
