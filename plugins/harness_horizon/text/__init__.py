"""Tasks 2 and 3: what a user will buy, in words that find it in a catalogue of titles."""
