# SPDX-License-Identifier: ISC
"""A fake Daytona; see __main__.py."""
