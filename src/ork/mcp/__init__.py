"""The Model Context Protocol: tools with which a program such as a coding assistant reads and operates an installation.

In: requests of the API (`requests.py`), answered by this process or by a server. Out: an MCP server with tools
(`server.py`), for `ork mcp` on standard input and output, and for `ork serve --mcp` on `/mcp`.
"""
