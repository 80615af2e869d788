"""Execution-state interface: frame interception, instrumented clones, events.

class Log(Observer):
    def attr_read(self, site, obj): print(site_location(site), type(obj), site.name)

with record(Log()): model(x)
"""
