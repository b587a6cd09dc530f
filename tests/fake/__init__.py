# SPDX-License-Identifier: ISC
"""Fake providers; see README.md."""
