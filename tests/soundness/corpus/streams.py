"""Text written to files and streams from outside."""

# ruff: noqa
import csv
import io
import json
import sys
import tempfile

import torch


def args(i):
    return (torch.ones(2) * (i + 0.25), i)


# === text_to_stream: calls=8
out = io.StringIO()


def region(x, i):
    n = out.write(f"{i}: {x.sum().item():.3f}\n")
    print(i, x.mean().item(), file=out, sep=";", flush=True)
    out.flush()
    return x + 1, n


def change_written():
    out.write("more")


def change_position():
    out.seek(0)


def change_closed():
    out.close()


def change_stream():
    global out
    out = io.StringIO(newline="\r\n")


def change_to_own():
    global out

    class Own(io.StringIO):
        def write(self, text):
            return io.StringIO.write(self, text.upper())

    out = Own()


def change_to_none():
    global out
    out = sys.stdout


# === text_is_read: refused calls=8
out = io.StringIO()


def region(x, i):
    out.write(f"{i}")
    return x + 1, out.getvalue()


# === text_to_stream_of_region: refused calls=8
def region(x, i):
    out = io.StringIO()
    out.write(f"{i}")
    return x + 1, out.getvalue()


# === json_lines: calls=8
out = io.StringIO()


def region(x, i):
    out.write(json.dumps({"step": i, "loss": x.sum().item()}) + "\n")
    json.dump({"step": i, "values": [x.mean().item(), None]}, out, indent=1)
    json.dump([1, 2], out)
    return x + 1


def change_stream():
    global out
    out = io.StringIO()


def change_closed():
    out.close()


# === csv_lines: calls=8
out = io.StringIO()
writer = csv.writer(out)


def region(x, i):
    n = writer.writerow([i, f"{x.sum().item():.4f}", x.mean().item(), None, "a,b"])
    return x + 1, n


def change_closed():
    out.close()


def change_dialect():
    global writer
    writer = csv.writer(out, delimiter=";")


def change_target():
    global writer, out
    out = io.StringIO()
    writer = csv.writer(out)


def change_to_own():
    global writer

    class Own:
        def write(self, text):
            print(text)

    writer = csv.writer(Own())


# === csv_of_own_stream: refused calls=8
class Own:
    def write(self, text):
        print(text)


writer = csv.writer(Own())


def region(x, i):
    writer.writerow([i])
    return x + 1


# === csv_by_name: calls=8
out = io.StringIO()
writer = csv.DictWriter(out, ["i", "loss"])


def region(x, i):
    writer.writerow({"i": i, "loss": x.sum().item()})
    return x + 1


def change_names():
    writer.fieldnames = ["loss", "i"]


def change_closed():
    out.close()


# === file_lines: calls=8
out = tempfile.TemporaryFile("w+")


def region(x, i):
    out.write(f"{i}: {x.sum().item():.3f}\n")
    return x + 1


def change_read():
    out.seek(0)
    print(out.read())


def change_closed():
    out.close()


# === stream_raises: calls=8
out = io.StringIO()


def region(x, i):
    out.write(f"{i}")
    if i > 4:
        raise ValueError("more than 4")
    return x + 1


# === writes_wrong_type: calls=8
out = io.StringIO()


def region(x, i):
    try:
        out.write(i)
    except TypeError as error:
        return x + 1, str(error)
