package demo

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
)

// draw returns a PNG: a disc on a gradient.
func draw() ([]byte, error) {
	const size, radius = 64, 20
	picture := image.NewRGBA(image.Rect(0, 0, size, size))
	for y := range size {
		for x := range size {
			c := color.RGBA{R: uint8(4 * x), G: uint8(4 * y), B: 160, A: 255}
			if dx, dy := x-size/2, y-size/2; dx*dx+dy*dy < radius*radius {
				c = color.RGBA{R: 255, G: 255, B: 255, A: 255}
			}
			picture.SetRGBA(x, y, c)
		}
	}
	var out bytes.Buffer
	err := png.Encode(&out, picture)
	return out.Bytes(), err
}
