"""Whether another similarity ranks better than cosine here, by how much, and if that is real.

``tasks`` and ``encoders`` read what is compared, ``compare`` runs it, ``statistics`` says what is
real and ``report`` shows it. Nothing of it is loaded by ``import recos``.
"""
