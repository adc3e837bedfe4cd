"""An episode becomes a plan and decisions about it. Decides, never acts."""
