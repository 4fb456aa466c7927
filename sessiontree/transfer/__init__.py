"""Where files meet the store: transcripts in, conversations out.

importing.py   a file into conversations, in resumable batches
stored.py      what of a file is in the store already, and where it stands there
exporting.py   a conversation as a file
"""

from sessiontree.formats.transcript import Note
from sessiontree.formats.transcripts import KnownFormat, formats_known
from sessiontree.transfer.exporting import export
from sessiontree.transfer.importing import Import, Progress, import_file

__all__ = ["Import", "KnownFormat", "Note", "Progress", "export", "formats_known", "import_file"]
