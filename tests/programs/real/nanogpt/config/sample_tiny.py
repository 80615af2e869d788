# Short samples of the model that config/tiny.py trains.
out_dir = "out-tiny"
start = "the "
max_new_tokens = 60
device = "cpu"
