"""The workloads that batches on a GPU are timed with."""

# Rows of one trajectory: (bytes of a row, pieces it lies in). A column is a row.
WORKLOADS = {
    "W1": [(44_000, 4), (12_000, 4)],
    "W2": [(384_000, 4), (4_000, 4)],
    "W3": [(12_000_000, 4)],
    "W4": [(2_176, 1), (2_176, 1), (544, 1)],  # Of the mean length, 544 tokens.
    "W5": [(2_257_920, 4)],
}
