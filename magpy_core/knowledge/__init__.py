"""Facts about callables and operators, each written once.

``callables`` (functions and classes), ``methods`` (of containers and classes), ``modules`` (verdicts of whole modules),
``policy`` (the verdict on any native callable), ``operators`` (operations of torch).
"""
