"""What was found out, and the commands that find it again: no part of the installed package."""
