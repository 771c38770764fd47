"""The paper's experiment on anyone's embeddings: tasks, encoders, measures and statistics.

``tasks`` and ``encoders`` read what is compared; nothing here is loaded by ``import recos``.
"""
