# SPDX-License-Identifier: ISC
"""A fake E2B; see __main__.py."""
