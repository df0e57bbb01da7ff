"""The building of prompts from logs of what users watched or listened to."""
