"""The stores of other agent frameworks, each behind the same few methods.

One file per peer. ``child`` runs one of them in a process of its own; ``compare.py``, in the
folder above, tells the children what to do and takes their times. Installed by the extra
``bench`` into an environment of their own.
"""
