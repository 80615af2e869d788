"""Overrides the globals of the script that executes this text: from config files, then from --key=value arguments.

$ python train.py config/tiny.py --batch_size=8
"""

import sys
from ast import literal_eval

for argument in sys.argv[1:]:
    if "=" not in argument:
        print(f"Settings of {argument}:")
        with open(argument) as f:
            settings = f.read()
        print(settings)
        exec(settings)
        continue
    key, text = argument.removeprefix("--").split("=", 1)
    if key not in globals():
        raise ValueError(f"There is no setting {key}")
    try:
        value = literal_eval(text)
    except (SyntaxError, ValueError):
        value = text
    assert type(value) is type(globals()[key]), f"{key} is of type {type(globals()[key]).__name__}"
    print(f"Setting {key} = {value}")
    globals()[key] = value
