"""Networks to judge the graph compiler with, and what measures them with onnxruntime; see docs/models.md."""
