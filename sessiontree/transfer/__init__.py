"""Where files meet the store: transcripts in, conversations out.

importing.py   a file into conversations, in resumable batches
gathering.py   everything in a folder or an archive
account.py     what an import did
stored.py      what of a file is in the store already, and where it stands there
exporting.py   a conversation as a file
excerpt.py     what of a conversation is exported: path or tree, without secrets if wished
order.py       the display order of a tree in little memory
writers.py     each format that is written
"""

from sessiontree.formats.redact import Redactor
from sessiontree.formats.transcript import Note
from sessiontree.formats.transcripts import KnownFormat, formats_known
from sessiontree.formats.writing.detail import Detail
from sessiontree.transfer.account import Import
from sessiontree.transfer.exporting import export, shows
from sessiontree.transfer.gathering import Refused, import_all
from sessiontree.transfer.importing import Progress, import_file

__all__ = [
    "Detail",
    "Import",
    "KnownFormat",
    "Note",
    "Progress",
    "Redactor",
    "Refused",
    "export",
    "formats_known",
    "import_all",
    "import_file",
    "shows",
]
