"""What a user sets: settings, options, parameters and wjoin.toml."""
