# SPDX-License-Identifier: ISC
"""A fake Vercel Sandbox; see __main__.py."""
