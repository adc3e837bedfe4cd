"""The one door to Ansible, to settings and to processes."""
