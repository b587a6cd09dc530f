# SPDX-License-Identifier: ISC
"""What all fakes share; see ../README.md."""
