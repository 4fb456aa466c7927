"""Formats that are only written: messages and trees in, pieces of text out.

lines.py        JSON and plain text of whatever a message may hold
detail.py       how much of each message is shown
html.py         one page; page/ holds its script and style
blocks.py       what a message says, as HTML
requests.py     what a provider's call takes, of a path
sharegpt.py     training: conversations by turns
oasst.py        training: message trees
preferences.py  training: pairs of answers (dpo), answers that are good or bad (kto)
table.py        csv
graph.py        mermaid and dot
otel.py         OpenTelemetry log records
rows.py         messages as rows of Claude Code and pi, which did not write them
"""
