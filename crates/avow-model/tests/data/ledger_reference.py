"""RFC 6962 leaves and roots by an independent implementation, for `tests/ledger.rs`.

    pip install pymerkle==7.0.0
    python ledger_reference.py > ledger_reference.json

The entries are the texts `entry 0`, `entry 1`, …; `leaves[i]` is the leaf of entry i, `roots[n]` the root over
the first n of them.
"""

import json

from pymerkle import InmemoryTree

COUNT = 70

tree = InmemoryTree(algorithm="sha256")
leaves, roots = [], [tree.get_root(0).hex()]
for i in range(COUNT):
    index = tree.append_entry(f"entry {i}".encode())
    leaves.append(tree.get_leaf(index).hex())
    roots.append(tree.get_root(i + 1).hex())

print(json.dumps({"leaves": leaves, "roots": roots}, indent=0))
