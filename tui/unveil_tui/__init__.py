"""The cockpit: a Textual app that talks to the watcher over its control socket only."""
