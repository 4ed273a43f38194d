"""The data model: immutable records shared by all packages. No behaviour beyond simple properties."""
