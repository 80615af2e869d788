"""Facts about callables and operators, each written once.

``callables`` (functions and classes), ``methods`` (of containers and classes), ``modules`` (verdicts of whole modules),
``policy`` (the verdict on any native callable), ``objects`` (attributes of objects with C state), ``library_files`` (which
Python files are monitored), ``operators`` (operations of torch), ``torch_functions`` (what else torch offers).
"""
